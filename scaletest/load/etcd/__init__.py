"""Key-value traffic straight to etcd: an asyncio process that the load driver starts, and the gRPC that it speaks."""
