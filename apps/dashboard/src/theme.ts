import { createTheme, type MantineColorsTuple } from '@mantine/core';

/** Parses ten shades, from lightest to darkest. */
const parseShades = (colors: string) => colors.split(' ') as unknown as MantineColorsTuple;

const dialogTitle = { fontWeight: 650, fontSize: '1.0625rem', lineHeight: 1.4 };

export const theme = createTheme({
  primaryColor: 'accent',
  primaryShade: { light: 7, dark: 6 },
  autoContrast: true,
  luminanceThreshold: 0.35,
  colors: {
    // The blue of the sign-in and consent pages.
    accent: parseShades('#eef5ff #dbe9ff #b4d1ff #84b8ff #559cf8 #2f82ea #176fdc #0b5fce #0850af #083f88'),
    gray: parseShades('#f7f8fa #f1f3f6 #e6e9ee #dde2e8 #c6cdd6 #8b96a2 #6b7683 #56616d #343d47 #1a2027'),
    dark: parseShades('#e9edf2 #c4ccd6 #a3aeba #78838f #333c47 #27303a #161b22 #0f141a #0b0f14 #07090c'),
  },
  black: '#1a2027',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace',
  defaultRadius: 'md',
  cursorType: 'pointer',
  focusRing: 'auto',
  respectReducedMotion: true,
  headings: {
    fontWeight: '650',
    sizes: {
      h1: { fontSize: '1.5rem', lineHeight: '1.3' },
      h2: { fontSize: '1.125rem', lineHeight: '1.4' },
      h3: { fontSize: '0.95rem', lineHeight: '1.5' },
    },
  },
  components: {
    Modal: {
      defaultProps: { centered: true, transitionProps: { duration: 0 }, closeButtonProps: { 'aria-label': 'Close' } },
      styles: { title: dialogTitle },
    },
    Drawer: { defaultProps: { closeButtonProps: { 'aria-label': 'Close' } }, styles: { title: dialogTitle } },
    Tooltip: {
      defaultProps: {
        openDelay: 300,
        withArrow: true,
        events: { hover: true, focus: true, touch: false },
        // A tooltip whose text grows is repositioned only in the next frame. Until then it must not widen the page.
        floatingStrategy: 'fixed',
      },
    },
    Notification: { defaultProps: { closeButtonProps: { 'aria-label': 'Dismiss' } } },
    Select: { defaultProps: { checkIconPosition: 'right' } },
    Alert: { defaultProps: { variant: 'light', radius: 'md' } },
    Badge: { defaultProps: { variant: 'light', radius: 'sm', tt: 'none', fw: 550 } },
  },
});
