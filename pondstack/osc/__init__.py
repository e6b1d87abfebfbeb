"""`openstack memory ...`: the command line of the rack memory service, a plugin of python-openstackclient."""
