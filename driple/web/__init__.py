"""`driple serve`: REST and a web page over the same questions as the command line (extra `web`).

    request -> limits -> sources, questions -> service -> api -> JSON of the command line, or a page

Uploads are read in a child process with limits of time and memory. No path and no file name is
taken from a user, nothing is written to disk, and user code is never run. Importing this package
imports no server.
"""
