import type { LoginField, LoginRules } from '@toolhost/tool-config/login';
import { isInDomains } from '@toolhost/tool-config/personal-values';

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
  /** Groups that the rules mentioned at the last check. The person may also be in one that was added later. */
  checkedGroups: readonly string[];
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
   * Asks the identity provider about a person again. If it has replaced its refresh token but could not say more about
   * the person, only the token of the result is new.
   * @throws AppError unauthenticated if it no longer knows the person, unavailable
   */
  check(identity: StoredIdentity, server: PeopleServer): Promise<StoredIdentity>;
  /** Updates the membership of a person, who may have left the workspace since they were identified. */
  updateMembership(identity: StoredIdentity, server: PeopleServer): Promise<StoredIdentity>;
  /** Returns true if a token issued now should come with a new check, because little of the last one is left. */
  isCheckDue(identity: StoredIdentity): boolean;
};

/** A field of a login, and the hosts that receive its value. */
export type LoginFieldUse = LoginField & { hosts: readonly string[]; isInHost: boolean };

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
export function selectGroups(
  { allow, views }: LoginRules,
  groups: readonly string[],
): Pick<StoredIdentity, 'groups' | 'checkedGroups'> {
  const mentioned = new Set([...(allow?.groups ?? []), ...(views ?? []).flatMap(({ group }) => group ?? [])]);
  return { groups: groups.filter((group) => mentioned.has(group)), checkedGroups: [...mentioned] };
}

type Person = Pick<StoredIdentity, 'email' | 'name' | 'groups' | 'checkedGroups' | 'isMember'>;

/** Returns the reason why a person may not log in, as a sentence for them. Undefined if they may. */
export function findRefusal({ rules, hasOauth }: ServerLogin, person: Person): string | undefined {
  const you = person.email ?? person.name ?? 'a person without a verified email address';
  if (!isAllowed(rules.allow ?? (hasOauth ? undefined : { members: true }), person))
    return `you are signed in as ${you}, who may not use this server; sign in with another account, or ask the owner of the server`;
  if (rules.views && findViewRule(rules, person) === undefined)
    return `you are signed in as ${you}, and none of your groups has a view of this server; ask its owner`;
  return undefined;
}

/**
 * Returns true if a person may call a server, by its current rules. A login that they limited to one view
 * (`agreedView`) gets no other view.
 */
export function isPersonAllowed(
  login: ServerLogin,
  person: StoredIdentity | undefined,
  agreedView: string | undefined,
): boolean {
  if (!person) return !login.identifiesPeople;
  if (findRefusal(login, person) !== undefined) return false;
  const view = getPersonView(login, person);
  return view === undefined || agreedView === undefined || agreedView === view;
}

function isAllowed(allow: LoginRules['allow'], { email, groups, isMember }: Person): boolean {
  if (!allow) return true;
  return (
    (allow.members === true && isMember) ||
    (allow.groups ?? []).some((group) => groups.includes(group)) ||
    (email !== undefined && isInDomains(email, allow.domains ?? []))
  );
}

/** Returns the first rule that matches a person. Undefined if it is not known that an earlier one does not. */
function findViewRule({ views = [] }: LoginRules, { groups, checkedGroups }: Person) {
  const rule = views.find(
    ({ group }) => group === undefined || groups.includes(group) || !checkedGroups.includes(group),
  );
  return rule?.group === undefined || groups.includes(rule.group) ? rule : undefined;
}

/** Returns the view that a person gets at every URL of a server. Undefined if the rules name no views. */
export function getPersonView({ rules }: ServerLogin, person: Person): string | undefined {
  return findViewRule(rules, person)?.view;
}

/** Returns the name of a person for display. */
export function getPersonName({ email, name }: Person): string | undefined {
  return email ?? name;
}
