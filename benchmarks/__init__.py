"""Speed of jaxmbs beside its peers, each measured in the same process on the same inputs (`make bench`)."""
