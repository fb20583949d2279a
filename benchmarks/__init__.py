"""Speed of jaxmbs compared with its peers, each measured in the same process on the same inputs (`make bench`)."""
