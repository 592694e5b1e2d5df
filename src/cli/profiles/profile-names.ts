const allowed = /^[a-z0-9][a-z0-9._-]{0,62}$/;
export const profileAdvice = 'allowed: up to 63 small letters, digits, dots, - and _, with a letter or a digit first';

export function isProfileName(name: string): boolean {
  return allowed.test(name);
}

export const urlAdvice = 'allowed: http:// or https://, a host and a port, without a path';

/** The origin of the address of a service; undefined for anything else. */
export function originIn(text: string): string | undefined {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') return undefined;
  return url.pathname === '/' && url.search === '' && url.hash === '' ? url.origin : undefined;
}
