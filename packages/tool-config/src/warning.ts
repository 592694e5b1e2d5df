/** A warning about a configuration that is valid but probably does not work as intended. */
export type Warning = { path: string; message: string };
