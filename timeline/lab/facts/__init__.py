"""What a context lets the model still know: the facts that recorded answers used, and where a policy leaves them."""
