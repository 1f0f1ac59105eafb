# Makes this a package: pyright prefers the checkout's package `timeline` to a mere folder, and would not look in here.
