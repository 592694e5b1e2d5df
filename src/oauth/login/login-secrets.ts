import { contexts } from '../../store/sealing/sealed-columns.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';

/** Sealed part of a login in progress. Without it a reader of the database cannot finish the login or forge its answer. */
export type LoginSecrets = {
  /** Our PKCE verifier towards the provider. */
  verifier: string;
  /** The client's own `state`. */
  clientState: string | undefined;
  /** The server's agreement when the person consented; a server that has changed since does not get the login. */
  agreement: string;
};

export function sealLoginSecrets(keyring: Keyring, id: string, secrets: LoginSecrets): string {
  return keyring.seal(JSON.stringify(secrets), contexts.login(id));
}

export function openLoginSecrets(keyring: Keyring, id: string, sealed: string): LoginSecrets {
  const secrets = JSON.parse(keyring.open(sealed, contexts.login(id))) as Partial<LoginSecrets>;
  return { verifier: '', clientState: undefined, agreement: '', ...secrets };
}
