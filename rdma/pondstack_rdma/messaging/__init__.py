"""RPC over RDMA as a driver of oslo.messaging: serializers, dispatcher, versions and time-outs stay the library's.

Nothing of pondstack.rpc imports this: oslo.messaging loads it by its entry point, where [rpc] transport asks for it.
"""
