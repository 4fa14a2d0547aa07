"""What a judge is asked, how its reply is read, and the HTTP client that asks it. Pure Python, no Django, no table.

Above ``core`` and ``metrics``. The judge gives verdicts; figures are computed here. ``transport``, ``wire``,
``client``, ``retrying`` and ``origins`` are the only modules that touch the network.

Door: ``catalogue.family_for``, ``rubric.shipped_rubric``, ``prompt.judge_call`` and ``hear``, ``client.OpenAIJudge``,
``baseline`` (the offline judge), ``calls`` (what goes in and comes out).
"""
