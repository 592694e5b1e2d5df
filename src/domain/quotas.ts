/**
 * Limits of a workspace's stored data and changes; 0 means no limit. Data that is deleted with a workspace counts
 * toward that workspace. Slugs and changes, which a deleted workspace does not give back, count toward all workspaces
 * of the tenant.
 */
export const quotaKinds = {
  servers: { fallback: 1000, what: 'hosted servers' },
  slugs: {
    fallback: 10_000,
    what: 'slugs in all workspaces of the creator, including deleted ones, which stay reserved',
  },
  tools: { fallback: 1000, what: 'tools per server' },
  megabytes: { fallback: 200, what: 'MB of configurations, including stored versions' },
  versions: { fallback: 50, what: 'stored versions per server' },
  secrets: { fallback: 2000, what: 'secrets in all servers' },
  keys: { fallback: 1000, what: 'active API keys' },
  members: { fallback: 200, what: 'members and invitations' },
  writes: { fallback: 600, what: 'changes per minute in all workspaces of the creator' },
  dailywrites: { fallback: 20_000, what: 'changes per day in all workspaces of the creator' },
} as const;

export type QuotaName = keyof typeof quotaKinds;
export type Quotas = { [Name in QuotaName]: number };
/** Configured quotas; absent ones have their default. */
export type SetQuotas = Partial<Quotas>;

export const quotaNames = Object.keys(quotaKinds) as QuotaName[];
export const mostQuota = 10_000_000;

export const builtInQuotas = Object.fromEntries(quotaNames.map((name) => [name, quotaKinds[name].fallback])) as Quotas;

/** Parses quotas such as `servers=2000,keys=0`. @throws Error with the text found and the text allowed */
export function parseQuotas(text: string): SetQuotas {
  const entries = text.split(',').filter((entry) => entry.trim() !== '');
  return Object.fromEntries(entries.map((entry) => parseQuota(entry.trim())));
}

function parseQuota(entry: string): [QuotaName, number] {
  const [, name = '', digits = ''] = /^([a-z]+)\s*=\s*(\d{1,8})$/.exec(entry) ?? [];
  const value = Number(digits);
  if (!isQuotaName(name) || digits === '' || value > mostQuota) {
    throw new Error(
      `QUOTAS: found ${JSON.stringify(entry)}; allowed: name=number, comma-separated, with ${quotaNames.join(', ')} and numbers from 0 (no limit) to ${mostQuota}`,
    );
  }
  return [name, value];
}

function isQuotaName(name: string): name is QuotaName {
  return Object.hasOwn(quotaKinds, name);
}
