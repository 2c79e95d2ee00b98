"""How a notification is sent: each sender takes its row and returns what the receiver answered."""
