//! How data becomes an image: the CPU ray caster.
