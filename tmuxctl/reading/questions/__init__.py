"""From a screen to the question on it, its options and the keys that choose them."""
