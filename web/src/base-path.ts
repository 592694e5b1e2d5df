/** The path of the base URL of the service, which it writes into the page; empty at the root of a host. */
export const basePath = document.querySelector<HTMLMetaElement>('meta[name="base-path"]')?.content ?? '';

/** The redirect URI of a login that is tried, below it. */
export const loginCheckPath = '/login-check';
