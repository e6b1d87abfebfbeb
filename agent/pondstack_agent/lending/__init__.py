"""Lender side of lent memory: a process that holds it, and the agent that decides about it (Zombieland 4.3).

`pondstack-lender` (process, book, service) outlives the agent. The agent (lending, lends, reclaims) talks to it by
`client`, decides by `plan`, and answers the controller.
"""
