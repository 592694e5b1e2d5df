import { isSafeUrl } from '../../doctor/checks.ts';
import { findIssuer, findResource } from '../../doctor/login.ts';
import { type Answered, Unreachable, type WebClient } from '../../doctor/web.ts';
import { AppError } from '../../errors.ts';

/** Where and how a login at a protected resource is done. */
export type LoginTarget = {
  /** URL of the resource that the tokens are for. */
  resource: string;
  issuer: string;
  authorizationEndpoint: string;
  tokenEndpoint: string;
  registrationEndpoint: string;
  revocationEndpoint: string | undefined;
  /** Scopes that the resource announces. */
  scopes: readonly string[];
  /** Whether the answer must name the issuer (RFC 9207). */
  namesIssuer: boolean;
};

/**
 * Reads the metadata of a resource that has refused a request without a credential (RFC 9728, RFC 8414).
 * @throws AppError when the metadata is missing, names another resource or issuer, or offers no login for a program
 */
export async function discoverLogin(web: WebClient, resource: string, refusal: Answered): Promise<LoginTarget> {
  const found = await findResource(web, resource, refusal);
  if (found.verdict.status === 'problem' || !found.resource) throw unusable(resource, found.verdict.detail);
  const { verdict, issuer, metadata } = await findIssuer(web, found.resource);
  if (verdict.status === 'problem' || issuer === undefined || !metadata) throw unusable(resource, verdict.detail);
  const registrationEndpoint = urlIn(metadata.registration_endpoint);
  if (registrationEndpoint === undefined)
    throw unusable(resource, 'programs cannot register there (registration_endpoint)');
  const revocationEndpoint = urlIn(metadata.revocation_endpoint);
  const scopes = Array.isArray(found.resource.scopes_supported) ? found.resource.scopes_supported : [];
  return {
    resource,
    issuer,
    // Checked with the metadata.
    authorizationEndpoint: String(metadata.authorization_endpoint),
    tokenEndpoint: String(metadata.token_endpoint),
    registrationEndpoint,
    revocationEndpoint,
    scopes: scopes.filter((scope) => typeof scope === 'string'),
    namesIssuer: metadata.authorization_response_iss_parameter_supported === true,
  };
}

function urlIn(value: unknown): string | undefined {
  return typeof value === 'string' && isSafeUrl(value) ? value : undefined;
}

function unusable(resource: string, why: string): AppError {
  return new AppError('invalid', `a login at ${resource} is not possible: ${why}`);
}

/** Asks, and turns the lack of an answer into an error for people. @throws AppError unavailable */
export async function askOrFail(web: WebClient, ...ask: Parameters<WebClient['ask']>): Promise<Answered> {
  try {
    return await web.ask(...ask);
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    throw new AppError('unavailable', `${new URL(ask[0]).origin} cannot be reached: ${error.message}`);
  }
}
