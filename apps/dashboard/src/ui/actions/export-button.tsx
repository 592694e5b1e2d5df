import { Button } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';

/** Link that downloads a file. */
export function ExportButton({ href, children }: { href: string; children: string }) {
  return (
    <Button component="a" href={href} download variant="default" leftSection={<IconDownload size={16} />}>
      {children}
    </Button>
  );
}
