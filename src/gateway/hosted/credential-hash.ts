import { hash } from 'node:crypto';

/** A digest of the credentials that a request sends; empty when it sends none. */
export type CredentialHash = (credentials: readonly string[]) => string;

export const credentialHash: CredentialHash = (credentials) =>
  // A header cannot contain a line break, so different lists of credentials never join to the same text.
  credentials.length === 0 ? '' : hash('sha256', credentials.join('\n'), 'base64url');

/** A digest for stored credentials, which are the same in every call: remembers its last answer. */
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
