"""Histories in which hosts hold slices for themselves, beside guests and in place of them."""
