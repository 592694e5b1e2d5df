const allowed = /^[a-z0-9][a-z0-9._-]{0,62}$/;
export const profileAdvice = 'allowed: up to 63 small letters, digits, dots, - and _, with a letter or a digit first';

export function isProfileName(name: string): boolean {
  return allowed.test(name);
}

export const urlAdvice = 'allowed: http:// or https://, a host, a port, and the path of the service where it has one';
