/** Permissions of a credential. `manage` includes both halves of managing. */
export const keyScopes = ['manage', 'manage:read', 'manage:write', 'call'] as const;
export type KeyScope = (typeof keyScopes)[number];

export const roles = ['owner', 'editor', 'viewer'] as const;
export type Role = (typeof roles)[number];

/** Scopes that an operation requires. */
export type Scope = 'manage:read' | 'manage:write' | 'call';

export function covers(granted: readonly KeyScope[], needed: Scope): boolean {
  return granted.includes(needed) || (needed !== 'call' && granted.includes('manage'));
}

/** Scopes of a signed-in member. */
export function scopesOf(role: Role): KeyScope[] {
  return role === 'viewer' ? ['manage:read'] : ['manage', 'call'];
}
