/**
 * Limits of a workspace's stored data and changes; 0 means no limit. Data that is deleted with a workspace counts
 * toward that workspace. Slugs and changes count toward all workspaces of their creator, and deleting a workspace frees
 * none of them.
 */
export const quotaKinds = {
  servers: { defaultValue: 1000, description: 'hosted servers' },
  slugs: {
    defaultValue: 10_000,
    description: 'slugs in all workspaces of the creator, including deleted ones, which stay reserved',
  },
  tools: { defaultValue: 1000, description: 'tools per server' },
  megabytes: { defaultValue: 200, description: 'MB of configurations, including stored versions' },
  versions: { defaultValue: 50, description: 'stored versions per server' },
  secrets: { defaultValue: 2000, description: 'secrets in all servers' },
  keys: { defaultValue: 1000, description: 'active API keys' },
  members: { defaultValue: 200, description: 'members and invitations' },
  writes: { defaultValue: 600, description: 'changes per minute in all workspaces of the creator' },
  daily_writes: { defaultValue: 20_000, description: 'changes per day in all workspaces of the creator' },
} as const;

export type QuotaName = keyof typeof quotaKinds;
export type Quotas = { [Name in QuotaName]: number };
/** Configured quotas; absent ones have their default. */
export type ConfiguredQuotas = Partial<Quotas>;

export const quotaNames = Object.keys(quotaKinds) as QuotaName[];
export const maxQuota = 10_000_000;

export const defaultQuotas = Object.fromEntries(
  quotaNames.map((name) => [name, quotaKinds[name].defaultValue]),
) as Quotas;

/** Parses quotas such as `servers=2000,keys=0`. @throws Error with the text found and the text allowed */
export function parseQuotas(text: string): ConfiguredQuotas {
  const entries = text.split(',').filter((entry) => entry.trim() !== '');
  return Object.fromEntries(entries.map((entry) => parseQuota(entry.trim())));
}

function parseQuota(entry: string): [QuotaName, number] {
  const [, name = '', digits = ''] = /^([a-z_]+)\s*=\s*(\d{1,8})$/.exec(entry) ?? [];
  const value = Number(digits);
  if (!isQuotaName(name) || digits === '' || value > maxQuota)
    throw new Error(
      `QUOTAS: found ${JSON.stringify(entry)}; allowed: name=number, comma-separated, with ${quotaNames.join(', ')} and numbers from 0 (no limit) to ${maxQuota}`,
    );
  return [name, value];
}

function isQuotaName(name: string): name is QuotaName {
  return Object.hasOwn(quotaKinds, name);
}
