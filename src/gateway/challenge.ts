import type { LoginHints } from '../domain/mcp.ts';
import type { Unauthenticated } from '../errors.ts';

/** The `WWW-Authenticate` field (RFC 6750, 3; RFC 9728, 5.1). Without credentials it carries no error. */
export function challenge(error: Unauthenticated, hints: LoginHints | undefined): string {
  const parts: string[] = [];
  if (hints) parts.push(`resource_metadata="${hints.resourceMetadata}"`);
  if (hints && hints.scopes.length > 0) parts.push(`scope="${hints.scopes.join(' ')}"`);
  if (error.refusal === 'invalid') parts.push('error="invalid_token"');
  if (error.refusal === 'forbidden') parts.push('error="insufficient_scope"');
  return parts.length > 0 ? `Bearer ${parts.join(', ')}` : 'Bearer';
}
