// @ts-check
/**
 * The anchor of a heading as GitHub makes it, so that one link works there and on the site. For headings of one page
 * that read alike GitHub appends -1, -2 and so on, which is left to the caller.
 * @param {string} heading its text, with or without Markdown's marks
 */
export const slug = heading =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')
