import { Badge } from '@mantine/core';
import { Link } from 'react-router';
import type { ServerRecord } from '../../api-types.ts';
import { toVisible } from '../../ui/text/visible.ts';

/** Tags, each with a link to all servers that have it. */
export function Tags({ server: { tags = [] } }: { server: ServerRecord }) {
  return tags.map((tag) => (
    <Badge key={tag} component={Link} to={`/servers?${new URLSearchParams({ query: tag })}`} mr={4}>
      {toVisible(tag)}
    </Badge>
  ));
}
