/** Slug of the example server of local mode, and the token that its API accepts. */
export const exampleSlug = 'projects';
export const exampleToken = 'local-example-key';
