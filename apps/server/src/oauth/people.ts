import type { LoginField, LoginRules } from '@toolhost/tool-config/login';

/** Values that bind the return from the identity provider to one login. All are secrets of this service. */
export type SignInSecrets = { state: string; verifier: string; nonce: string };

/** A person as the identity provider described them at the last check. It is stored with their login. */
export type StoredIdentity = {
  userId: string;
  issuer: string;
  subject: string;
  /** Verified email address. */
  email: string | undefined;
  name: string | undefined;
  /** Groups that the rules of the server mention. */
  groups: readonly string[];
  isMember: boolean;
  /** Refresh token of the identity provider, for the next check. Undefined if it issued none. */
  refreshToken: string | undefined;
  /** Time until which the identity is valid, in epoch ms. */
  expiresAt: number;
};

/** Server whose people are identified. */
export type PeopleServer = { workspaceId: string; login: Pick<ServerLogin, 'rules'> };

/** Identifies people with the identity provider of this service. */
export type People = {
  /** Host of the identity provider, for display. */
  host: string;
  /** Returns the only person of local mode, who needs no identity provider. Undefined in production. */
  findLocalPerson: ((server: PeopleServer) => Promise<StoredIdentity>) | undefined;
  /** Builds the URL at the identity provider. @throws AppError unavailable */
  buildSignInUrl(secrets: SignInSecrets): Promise<URL>;
  /**
   * Identifies the person who returned, and stores them. `parameters` are those of the response.
   * @throws AppError unauthenticated, unavailable
   */
  identify(parameters: URLSearchParams, secrets: SignInSecrets, server: PeopleServer): Promise<StoredIdentity>;
  /**
   * Asks the identity provider about a person again.
   * @throws AppError unauthenticated if it no longer knows the person, unavailable
   */
  check(identity: StoredIdentity, server: PeopleServer): Promise<StoredIdentity>;
  /** Returns true if a token issued now should come with a new check, because little of the last one is left. */
  isCheckDue(identity: StoredIdentity): boolean;
};

/** A field of a login, and the hosts that receive its value. */
export type LoginFieldUse = LoginField & { hosts: readonly string[] };

/** Login of people at a server, from `login` of its configuration. */
export type ServerLogin = {
  rules: LoginRules;
  /** True if people log in to a provider of the server afterwards. Then anyone may log in unless `allow` is set. */
  hasOauth: boolean;
  /** True if the identity provider of this service names the person. */
  identifiesPeople: boolean;
  fields: readonly LoginFieldUse[];
  /** Hash of the fields and of the hosts that receive their values. */
  valuesAgreement: string;
};

/**
 * Returns the groups of a person that a server's rules mention. The others decide nothing, so they are not stored.
 */
export function selectGroups({ allow, views }: LoginRules, groups: readonly string[]): string[] {
  const mentioned = new Set([...(allow?.groups ?? []), ...(views ?? []).flatMap(({ group }) => group ?? [])]);
  return groups.filter((group) => mentioned.has(group));
}

type Person = Pick<StoredIdentity, 'email' | 'name' | 'groups' | 'isMember'>;

/** Returns the reason why a person may not log in, as a sentence for them. Undefined if they may. */
export function findRefusal({ rules, hasOauth }: ServerLogin, person: Person): string | undefined {
  const you = person.email ?? person.name ?? 'a person without a verified email address';
  if (!isAllowed(rules.allow ?? (hasOauth ? undefined : { members: true }), person))
    return `you are signed in as ${you}, who may not use this server; sign in with another account, or ask the owner of the server`;
  if (rules.views && findViewRule(rules, person) === undefined)
    return `you are signed in as ${you}, and none of your groups has a view of this server; ask its owner`;
  return undefined;
}

/** Returns true if a person may call a server, by its current rules. */
export function isPersonAllowed(login: ServerLogin, person: StoredIdentity | undefined): boolean {
  return person ? findRefusal(login, person) === undefined : !login.identifiesPeople;
}

function isAllowed(allow: LoginRules['allow'], { email, groups, isMember }: Person): boolean {
  if (!allow) return true;
  return (
    (allow.members === true && isMember) ||
    (allow.groups ?? []).some((group) => groups.includes(group)) ||
    isInDomain(email, allow.domains ?? [])
  );
}

/** Returns true if an address has exactly one `@` and one of these domains after it. */
function isInDomain(email: string | undefined, domains: readonly string[]): boolean {
  const [, domain, ...others] = email?.split('@') ?? [];
  return domain !== undefined && others.length === 0 && domains.some((d) => d.toLowerCase() === domain.toLowerCase());
}

function findViewRule({ views = [] }: LoginRules, { groups }: Person) {
  return views.find(({ group }) => group === undefined || groups.includes(group));
}

/** Returns the view that a person gets at every URL of a server. Undefined if the rules name no views. */
export function getPersonView({ rules }: ServerLogin, person: Person): string | undefined {
  return findViewRule(rules, person)?.view;
}

/** Returns the name of a person for display. */
export function getPersonName({ email, name }: Person): string | undefined {
  return email ?? name;
}
