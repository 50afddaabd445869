"""What a gateway signs: the certificates of its servers, its accounts, and the hosts and clients that belong to them."""
