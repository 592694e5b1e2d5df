import { Badge } from '@mantine/core';
import { Link } from 'react-router';
import { changesText } from '../../../../src/operations/import-changes.ts';
import type { ServerRecord } from '../../answers.ts';

/** Says in a list that the description of a server has changed or cannot be read, and leads to its import. */
export function ImportBadge({ server: { slug, imported } }: { server: ServerRecord }) {
  const { changed, error, counts } = imported ?? {};
  if (error === undefined && !changed) return null;
  return (
    <Badge
      component={Link}
      to={`/servers/${slug}/import`}
      color={error === undefined ? 'blue' : 'yellow'}
      variant="light"
      size="sm"
      className="th-badge-link"
      title={error ?? (counts && changesText(counts))}
    >
      {error === undefined ? 'API changed' : 'API unreadable'}
    </Badge>
  );
}
