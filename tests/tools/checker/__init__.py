"""What clients did and saw while processes were killed and connections cut, and the laws that it must keep."""
