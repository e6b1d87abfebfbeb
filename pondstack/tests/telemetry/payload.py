"""A notification of an instance, as Nova's own sample has it."""

UUID = "178b0921-8f85-4257-88b6-2e743b5a975c"
PAYLOAD = {
    "nova_object.name": "InstanceActionPayload",
    "nova_object.data": {
        "uuid": UUID,
        "tenant_id": "6f70656e737461636b20342065766572",
        "flavor": {"nova_object.data": {"name": "test_flavor", "memory_mb": 512, "vcpus": 1, "root_gb": 1}},
        "image_uuid": "155d900f-4e14-4e4c-a73d-069cbf4541e6",
        "os_type": "Linux",
        "availability_zone": "nova",
        "display_name": "some-server",
        "created_at": "2012-10-29T13:42:11Z",
        "deleted_at": None,
        "terminated_at": None,
    },
}
