# RPostgreSQL: `Rscript in_r.R HOST PORT USER PASSWORD DATABASE ASK SCAN BUDGET`. Prints one line for each thing it saw.
library(RPostgreSQL)
given <- commandArgs(trailingOnly = TRUE)
connection <- dbConnect(
  dbDriver("PostgreSQL"),
  host = given[1], port = as.integer(given[2]), user = given[3], password = given[4], dbname = given[5]
)
shown <- function(name, value) cat(name, "\t", paste(value, collapse = "|"), "\n", sep = "")
asked <- function(sql) {
  found <- dbGetQuery(connection, sql)
  paste(found[[1]], format(found[[2]], digits = 17, trim = TRUE), sep = "=")
}
refused <- function(sql) {
  result <- suppressWarnings(tryCatch(dbGetQuery(connection, sql), error = function(error) NULL))
  if (is.null(result)) trimws(gsub("[\t\n]+", " ", dbGetException(connection)$errorMsg)) else "answered"
}
shown("tables", dbListTables(connection))
shown("rows", asked(given[6]))
shown("again", asked(given[6]))
shown("scan", refused(given[7]))
shown("budget", refused(given[8]))
shown("after", asked(given[6]))
invisible(dbDisconnect(connection))
