/** The NAMEs of every {{NAME}} in a configuration. */
export function secretNames(config: unknown): string[] {
  const found = JSON.stringify(config ?? null).matchAll(/\{\{([A-Za-z_]\w{0,63})\}\}/g);
  return [...new Set([...found].map((match) => match[1] ?? ''))];
}
