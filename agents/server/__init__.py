"""The HTTP service: opponents, the referee and hosted matches for other frontends.

Needs the extra ``serve``; ``docs/server.md`` describes it. Whatever a request names is looked up in
a list made when the service starts: no path, address or file in a request is ever opened.
"""
