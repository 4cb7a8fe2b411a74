# What every export to JAX has in it.
