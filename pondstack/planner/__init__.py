"""What pooling would save a cloud: its own history is replayed with the policies of production."""
