"""Own metrics: packages that register rule metrics and judge families without a change to the product.

``package`` is for their authors. ``discovery`` finds installed packages, ``loading`` checks and registers them.
``isolation`` calls their code in a child process, which ``__main__`` is; ``results`` checks what it returns."""
