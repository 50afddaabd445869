"""The scoring run: plays real programs whose true state is known second by second, and judges every sample of them."""
