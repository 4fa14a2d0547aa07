"""What pages show of runs without computing it: report, headline, plan, agreement and answers of a run, comparisons.

Above ``comparisons`` and ``plans``, below the entrances. ``making`` makes each from nothing, ``keeping`` says whether
what stands is still true and who makes it anew, ``reading`` is what pages read.

Door: ``reading.run_figures``, ``headlines_of``, ``agreement_figures``, ``compared``, ``compared_now``,
``correction_now``, ``figures_now`` and ``listed_answers``, ``making.remake``, ``making.differing``.
"""
