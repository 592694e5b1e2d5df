import { z } from 'zod';
import { type OwnedNames, ownedNames } from '../http/parameter-names.ts';
import { placeholderNames } from '../http/placeholders.ts';

export const authenticationTypes = ['Bearer', 'ApiKey', 'Basic', 'QueryParam'] as const;

/** How a token reaches the upstream (spec 2.2). */
export const authenticationSchema = z.strictObject({
  type: z
    .enum(authenticationTypes)
    .describe(
      'Bearer and Basic prefix the token with that word, ApiKey sends it as it is, QueryParam puts it in the URL.',
    ),
  header: z.string().optional().describe('Header that carries the token; Authorization when absent.'),
  query_key: z.string().min(1).max(64).optional().describe('Query parameter for QueryParam; api_key when absent.'),
  token: z
    .string()
    .min(1)
    .max(8192)
    .optional()
    .describe(
      'A stored credential sent on every call, normally "{{NAME}}"; callers then use an API key of the workspace.',
    ),
});

export type Authentication = z.infer<typeof authenticationSchema>;

/** The header that carries the credential, or undefined when it goes into the query. */
export function credentialHeader(authentication: Authentication): string | undefined {
  return authentication.type === 'QueryParam' ? undefined : (authentication.header ?? 'Authorization');
}

/** The query parameter that carries the credential, or undefined when it goes into a header. */
export function credentialQueryKey(authentication: Authentication): string | undefined {
  return authentication.type === 'QueryParam' ? (authentication.query_key ?? 'api_key') : undefined;
}

/** The query parameter of the credential as names are compared with it; no name is when it goes into a header. */
export function credentialQueryNames(authentication: Authentication | undefined): OwnedNames {
  const key = authentication && credentialQueryKey(authentication);
  return ownedNames(key === undefined ? [] : [key]);
}

/** The field value for a token (spec 2.2, scheme meanings). */
export function credentialValue(authentication: Authentication, token: string): string {
  const { type } = authentication;
  return type === 'Bearer' || type === 'Basic' ? `${type} ${token}` : token;
}

/** Whether `token` is the credential itself rather than a reference to a stored one; it is then sealed and masked. */
export function isLiteralToken(authentication: Authentication | undefined): boolean {
  return authentication?.token !== undefined && placeholderNames(authentication.token).length === 0;
}
