# What each operator is in JAX.
