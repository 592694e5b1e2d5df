import type { ConfigRules } from '../../domain/config/server-config.ts';
import { parseEgressAllow, urlProblem } from '../../outbound/egress.ts';

/** Settings of the deployment that restrict configurations, as plain data. `egressAllow` has the form of EGRESS_ALLOW. */
export type RuleSource = { managementSlug: string; egressAllow: string; own: string };

export function rulesOf({ managementSlug, egressAllow, own }: RuleSource): ConfigRules {
  const allow = parseEgressAllow(egressAllow);
  return { managementSlug, urlProblem: (url) => urlProblem(url, allow, own) };
}
