"""Other projects ("peers") measured on our corpora: `longtail peers` and the comparisons of `bench/linear.py`.

`listed` has the peers with their pinned versions, `environments` makes an environment for each, `exchange` writes the
files that they read, `run` makes a run and its line of the results. What runs inside a peer's environment is in
`outside/peerside`: a file for each peer, which never imports longtail.
"""
