"""Python's libvirt bindings, which a host may lack. The one file that imports libvirt."""

from typing import Any


def bindings() -> Any:
    """Return the module `libvirt`, None where it is not installed."""
    try:
        import libvirt
    except ImportError:
        return None
    # Without this the bindings print each error to stderr, too.
    libvirt.registerErrorHandler(lambda _context, _error: None, None)
    return libvirt
