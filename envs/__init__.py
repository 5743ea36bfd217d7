"""The game as learners see it: every module here is a view of `retinue.envs.game`."""
