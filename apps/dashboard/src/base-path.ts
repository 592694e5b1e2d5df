/** Path of the service's base URL, which the service writes into the page. Empty at the root of a host. */
export const basePath = document.querySelector<HTMLMetaElement>('meta[name="base-path"]')?.content ?? '';

/** Path of the redirect URI for login checks, relative to the base path. */
export const loginCheckPath = '/login-check';
