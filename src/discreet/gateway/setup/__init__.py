"""The first run of a gateway: from data to a policy that is served, in steps that an owner decides in a browser."""
