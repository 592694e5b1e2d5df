import { hash } from 'node:crypto';

/** A digest of the credentials that a request sends; empty when it sends none. */
export type CredentialHash = (credentials: readonly string[]) => string;

export const credentialHash: CredentialHash = (credentials) =>
  // No header can hold a line break, so no list of credentials can pose as another.
  credentials.length === 0 ? '' : hash('sha256', credentials.join('\n'), 'base64url');

/** For stored credentials, which are the same in every call: remembers its last answer. */
export function createStoredCredentialHash(): CredentialHash {
  let last: readonly string[] = [];
  let digest = '';
  return (credentials) => {
    const isSame = credentials.length === last.length && credentials.every((value, index) => value === last[index]);
    if (isSame) return digest;
    last = [...credentials];
    digest = credentialHash(credentials);
    return digest;
  };
}
