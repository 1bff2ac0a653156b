"""Pictures, maps and a page to walk through a model, by the client `gloved`: what is behind
`python3 -m gloved plot`, `map` and `explore`."""
