"""What a judge is asked, how its reply is read, and the HTTP client that asks it. Pure Python, no Django, no table.

Above ``core`` and ``metrics``. The judge gives verdicts; figures are computed here. Clients of judges stand in
``providers``, one file each; the network is touched by ``evaluation.network`` alone.

Door: ``catalogue.family_for``, ``rubric.shipped_rubric``, ``prompt.judge_call`` and ``hear``, ``providers.catalogue``,
``baseline`` (word rules of the offline judge), ``calls`` (what goes in and comes out).
"""
