"""What the server tells by itself: events, terminals, webhooks."""
